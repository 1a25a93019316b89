CREATE TABLE t(Abc int, KEY Kx (Abc));
