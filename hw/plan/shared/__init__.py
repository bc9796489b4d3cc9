"""Arrays that several layers share: which they can be, and their exact cost by playing all counters."""
