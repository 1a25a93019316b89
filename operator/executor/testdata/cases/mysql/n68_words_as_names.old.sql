CREATE TABLE `select`(`from` int, `key` int, KEY `key` (`key`));
CREATE TABLE `check`(`primary` int, CONSTRAINT `unique` CHECK (`primary` > 0));
