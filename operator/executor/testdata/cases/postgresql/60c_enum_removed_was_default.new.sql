CREATE TYPE s AS ENUM ('live', 'dead'); CREATE TABLE w (id int PRIMARY KEY, st s NOT NULL DEFAULT 'live', t text DEFAULT ('live'::s)::text, kind text DEFAULT 'live');
