CREATE TABLE t(b bigint NOT NULL, id bigint AUTO_INCREMENT, z json, a varchar(20) COLLATE utf8mb4_bin DEFAULT 'x', PRIMARY KEY (id), UNIQUE KEY k(a,b), CONSTRAINT c CHECK (b > 1)) COMMENT='n';
