CREATE TYPE s AS ENUM ('low', 'high', 'mid'); CREATE TABLE w (id int PRIMARY KEY, st s NOT NULL DEFAULT 'mid');
CREATE INDEX w_st ON w (st); INSERT INTO w VALUES (1, 'high'), (2, 'low'), (3, 'mid');
