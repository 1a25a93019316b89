CREATE TABLE t(a int);
SET character_set_client = latin1;
CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1;
