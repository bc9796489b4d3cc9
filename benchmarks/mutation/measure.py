DESIGNS=None
measure=None
