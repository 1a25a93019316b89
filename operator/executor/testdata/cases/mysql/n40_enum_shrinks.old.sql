CREATE TABLE t(a enum('a','b','c'), s set('x','y'));
