SELECT a, "b B" FROM "T"
