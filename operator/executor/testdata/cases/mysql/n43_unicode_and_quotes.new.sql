CREATE TABLE `tä`(`sé``l` int COMMENT 'ü''\\"x', `日本` varchar(9) DEFAULT '語');
CREATE VIEW `vü` AS SELECT `日本` FROM `tä` WHERE `日本` <> 'ñ';
