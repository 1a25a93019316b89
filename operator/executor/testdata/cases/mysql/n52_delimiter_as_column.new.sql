CREATE TABLE t(
  id int,
  delimiter varchar(5)
);
DELIMITER //
CREATE TABLE u(
  a int,
  delimiter int
)//
CREATE PROCEDURE p() BEGIN SELECT 1; SELECT '//'; END //
DELIMITER ;
