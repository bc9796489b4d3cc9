"""C text: expressions with proven ranges, transforms, products, tables, and the file that the kinds write into."""
