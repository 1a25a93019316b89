CREATE TABLE `tä`(`sé``l` int COMMENT 'ü''"');
