"""The kinds of layers: each file has all that is known of one, fields, integers, floats, files, formats, ranges, bound.

`matrix` and `cell` have what several kinds share.
"""
