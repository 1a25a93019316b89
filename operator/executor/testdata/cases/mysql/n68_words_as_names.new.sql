CREATE TABLE `select`(`from` bigint, `key` int, `references` int, `auto_increment` int COMMENT 'AUTO_INCREMENT', KEY `foreign` (`key`));
CREATE TABLE `check`(`primary` int, `partition` int, CONSTRAINT `unique` CHECK (`primary` > 1));
CREATE VIEW `view` AS SELECT `from` AS `definer` FROM `select`;
CREATE PROCEDURE `begin`() SELECT 1;
