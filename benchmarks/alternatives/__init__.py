"""Block-circulant matrices against every other way to make a recurrent layer smaller, at equal cost."""
