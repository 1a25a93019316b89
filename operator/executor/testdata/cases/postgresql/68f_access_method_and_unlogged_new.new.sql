CREATE TABLE t (a int); CREATE UNLOGGED TABLE u (a serial); CREATE TABLE "Heap" (a int) USING heap;
