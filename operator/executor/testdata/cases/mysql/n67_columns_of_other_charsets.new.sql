CREATE TABLE t(a varchar(9) CHARACTER SET utf8mb4, c text CHARACTER SET latin1 COLLATE latin1_bin, b varchar(9) CHARACTER SET ascii COLLATE ascii_bin) CHARSET=latin1 COLLATE=latin1_general_cs;
