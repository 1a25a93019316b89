CREATE TYPE s AS ENUM ('low', 'mid', 'high'); CREATE TABLE w (id int PRIMARY KEY, st s NOT NULL DEFAULT 'mid');
CREATE INDEX w_st ON w (st);
