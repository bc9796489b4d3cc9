"""The kinds of layers: each file has all that is known of one, fields, integers, floats, files, formats, ranges, bound.

`matrix`, `cell` and `elementwise` have what several kinds share.
"""
