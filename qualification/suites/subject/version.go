package subject

import "ptah.run/ptah/qualification/lab"

// Version is the SQL of one version of a schema, by engine of the lab's database.
type Version map[string]string

const (
	firstPostgreSQL = "CREATE TABLE customers (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email text NOT NULL UNIQUE);\n" +
		"CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer_id bigint NOT NULL REFERENCES customers (id), total numeric(12,2) NOT NULL CHECK (total >= 0));\n" +
		"CREATE INDEX orders_customer ON orders (customer_id);\n"
	firstMySQL = "CREATE TABLE customers (id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, email varchar(255) NOT NULL UNIQUE);\n" +
		"CREATE TABLE orders (id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, customer_id bigint NOT NULL, total decimal(12,2) NOT NULL CHECK (total >= 0),\n" +
		"  CONSTRAINT orders_customer FOREIGN KEY (customer_id) REFERENCES customers (id));\n"
	addName  = "ALTER TABLE customers ADD COLUMN name text;\n"
	addPhone = "ALTER TABLE customers ADD COLUMN phone text;\n"
)

// First is a small schema: two tables, a key between them, and an index. Second adds the column customers.name to it,
// in one statement, and Third the column customers.phone to that.
var (
	First  = Version{lab.PostgreSQL: firstPostgreSQL, lab.MySQL: firstMySQL}
	Second = Version{lab.PostgreSQL: firstPostgreSQL + addName, lab.MySQL: firstMySQL + addName}
	Third  = Version{lab.PostgreSQL: firstPostgreSQL + addName + addPhone, lab.MySQL: firstMySQL + addName + addPhone}
)
