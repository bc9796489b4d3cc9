"""The serial link between a host and a design: frames with a check sum over a UART, and the unit that answers them."""
