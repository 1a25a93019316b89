CREATE TYPE s AS ENUM ('a', 'b', 'c'); CREATE TABLE w (id int PRIMARY KEY, all_of s[] NOT NULL DEFAULT '{a,c}'::s[], two s[][] DEFAULT ARRAY[ARRAY['a'::s]]);
CREATE INDEX w_all ON w USING gin (all_of); ALTER TABLE w ADD CONSTRAINT few CHECK (cardinality(all_of) < 9 AND NOT 'b'::s = ANY (all_of));
INSERT INTO w VALUES (1, DEFAULT, DEFAULT), (2, '{c,NULL,a}', '{{a,c},{c,a}}'), (3, '{}', NULL);
