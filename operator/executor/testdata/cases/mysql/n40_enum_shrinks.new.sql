CREATE TABLE t(a enum('c','a'), s set('y','x','z'));
