CREATE TABLE t(j json, KEY m ((cast(j->'$.a' as unsigned array))));
