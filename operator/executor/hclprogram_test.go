package executor_test

import (
	"strings"
	"testing"

	"ptah.run/ptah/operator/executor/command"
	"ptah.run/ptah/operator/plan/report"
)

// planned plans, applies and proves what a folder declares, and then that the database holds what another one says.
func (p *person) planned(schema, truth string) {
	p.t.Helper()
	var plan, rest report.SchemaPlan
	file := p.path("plan.json")
	p.json(command.ExitDone, &plan, "schema", "plan", "--schema="+schema, "--output="+file)
	if plan.Outcome != report.OutcomeChanges || plan.Statements == 0 {
		p.t.Fatalf("%+v", plan)
	}
	var applied report.SchemaApply
	p.json(command.ExitDone, &applied, "schema", "apply", "--plan="+file, "--expect-digest="+plan.PlanDigest, "--auto-approve")
	if applied.Outcome != report.OutcomeApplied {
		p.t.Fatalf("%+v", applied)
	}
	for _, again := range []string{schema, truth} {
		rest = report.SchemaPlan{}
		p.json(command.ExitDone, &rest, "schema", "plan", "--schema="+again)
		if rest.Outcome != report.OutcomeNoChanges {
			text, _ := p.text(command.ExitDone, "schema", "plan", "--schema="+again)
			p.t.Errorf("%s is not what the database holds: %s", again, text)
		}
	}
}

const postgresqlHCL = `schema "public" {
  comment = "standard public schema"
}
schema "shop" {
  comment = "where it's sold"
}
enum "state" {
  schema = schema.shop
  values = ["open", "it's paid"]
}
table "customers" {
  schema  = schema.shop
  comment = "who buys"
  column "id" {
    type = bigint
    null = false
    identity {
      generated = ALWAYS
      start     = 10
    }
  }
  column "email" {
    type    = varchar(200)
    null    = false
    comment = "where they're reached"
  }
  column "name" {
    type    = text
    null    = false
    default = "nobody's"
  }
  column "state" {
    type    = enum.state
    null    = false
    default = "open"
  }
  column "made" {
    type    = timestamptz(3)
    null    = false
    default = sql("now()")
  }
  column "low" {
    type = text
    null = true
    as {
      expr = "lower(email)"
    }
  }
  primary_key {
    columns = [column.id]
  }
  unique "customers_email" {
    columns = [column.email]
  }
  index "customers_name" {
    unique = true
    where  = "state = 'open'"
    on {
      expr = "lower(name)"
    }
    on {
      column = column.made
      desc   = true
    }
  }
  check "customers_name_filled" {
    expr = "length(name) > 0"
  }
}
table "orders" {
  schema = schema.public
  column "id" {
    type = int
    null = false
  }
  column "customer" {
    type = bigint
    null = true
  }
  column "tags" {
    type = sql("text[]")
    null = true
  }
  primary_key {
    columns = [column.id]
    include = [column.customer]
  }
  foreign_key "orders_customer" {
    columns     = [column.customer]
    ref_columns = [table.customers.column.id]
    on_delete   = SET_NULL
    on_update   = CASCADE
  }
}
`

const postgresqlTruth = `CREATE SCHEMA shop;
COMMENT ON SCHEMA shop IS 'where it''s sold';
CREATE TYPE shop.state AS ENUM ('open', 'it''s paid');
CREATE TABLE shop.customers (id bigint GENERATED ALWAYS AS IDENTITY (START WITH 10) PRIMARY KEY, email varchar(200) NOT NULL,
	name text NOT NULL DEFAULT 'nobody''s', state shop.state NOT NULL DEFAULT 'open', made timestamptz(3) NOT NULL DEFAULT now(),
	low text GENERATED ALWAYS AS (lower(email)) STORED, CONSTRAINT customers_email UNIQUE (email),
	CONSTRAINT customers_name_filled CHECK (length(name) > 0));
COMMENT ON TABLE shop.customers IS 'who buys';
COMMENT ON COLUMN shop.customers.email IS 'where they''re reached';
CREATE UNIQUE INDEX customers_name ON shop.customers (lower(name), made DESC) WHERE state = 'open';
CREATE TABLE orders (id int NOT NULL, customer bigint, tags text[], PRIMARY KEY (id) INCLUDE (customer),
	CONSTRAINT orders_customer FOREIGN KEY (customer) REFERENCES shop.customers(id) ON DELETE SET NULL ON UPDATE CASCADE);
CREATE VIEW emails AS SELECT email FROM shop.customers;
`

// What HCL declares, with SQL beside it, is planned, applied and then the same as the SQL that a person would write.
func TestProgramPlansHCL(t *testing.T) {
	server := targetServer(t)
	if err := server.Create(t.Context(), "hcl"); err != nil {
		t.Fatal(err)
	}
	p := newPerson(t, server, "hcl")
	p.write("schema/10.hcl", postgresqlHCL)
	p.write("schema/20.sql", "CREATE VIEW emails AS SELECT email FROM shop.customers;")
	truth := p.write("truth.sql", postgresqlTruth)
	p.planned(p.path("schema"), truth)

	p.write("schema/10.hcl", strings.Replace(postgresqlHCL, "nobody's", "somebody's", 1))
	p.write("truth.sql", strings.Replace(postgresqlTruth, "nobody''s", "somebody''s", 1))
	p.planned(p.path("schema"), truth)
	p.refusesHCL("schema \"public\" {}\ntable \"t\" {\n  schema = schema.public\n  column \"a\" {\n    type = sql(\"no_such\")\n    null = false\n  }\n}\n")
}

// refusesHCL plans for a declaration that the server refuses, and for one with a misspelt word.
func (p *person) refusesHCL(unknown string) {
	p.t.Helper()
	var out report.SchemaPlan
	p.json(command.ExitRefused, &out, "schema", "plan", "--schema="+p.write("bad.hcl", unknown))
	if out.Problem.Code != report.CodeInvalidSchema || !strings.Contains(out.Problem.Message, "what line 2 of the file bad.hcl declares") {
		p.t.Errorf("%+v", out.Problem)
	}
	var drift report.Drift
	p.json(command.ExitRefused, &drift, "schema", "drift", "--schema="+p.write("bad.hcl", strings.Replace(unknown, "null", "nul", 1)))
	if drift.Problem.Code != report.CodeInvalidSchema || !strings.HasPrefix(drift.Problem.Message, "bad.hcl:6: ") {
		p.t.Errorf("%+v", drift.Problem)
	}
}

const mysqlHCL = `schema "whatever" {
  charset = "utf8mb4"
  collate = "utf8mb4_0900_ai_ci"
}
table "customers" {
  schema  = schema.whatever
  comment = "who's \"buying\""
  column "id" {
    type           = bigint
    unsigned       = true
    null           = false
    auto_increment = true
  }
  column "email" {
    type    = varchar(200)
    null    = false
    charset = "latin1"
    collate = "latin1_bin"
  }
  column "state" {
    type    = enum("open", "paid")
    null    = false
    default = "open"
  }
  column "made" {
    type      = datetime(3)
    null      = false
    default   = sql("CURRENT_TIMESTAMP(3)")
    on_update = sql("CURRENT_TIMESTAMP(3)")
  }
  column "token" {
    type    = char(36)
    null    = false
    default = sql("(uuid())")
  }
  column "low" {
    type = varchar(200)
    null = true
    as {
      expr = "lower(token)"
      type = VIRTUAL
    }
  }
  primary_key {
    columns = [column.id]
  }
  index "customers_email" {
    unique = true
    on {
      column = column.email
      prefix = 50
      desc   = true
    }
  }
  index "customers_token" {
    type    = FULLTEXT
    columns = [column.token]
  }
  check "customers_token_filled" {
    expr = "length(token) > 0"
  }
}
table "orders" {
  schema = schema.whatever
  column "id" {
    type = int(11)
    null = false
  }
  column "customer" {
    type     = bigint
    unsigned = true
    null     = true
  }
  primary_key {
    columns = [column.id]
  }
  index "orders_customer" {
    columns = [column.customer]
  }
  foreign_key "orders_customer" {
    columns     = [column.customer]
    ref_columns = [table.customers.column.id]
    on_delete   = SET_NULL
  }
}
`

const mysqlTruth = `CREATE TABLE customers (id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, email varchar(200) CHARACTER SET latin1 COLLATE latin1_bin NOT NULL,
	state enum('open', 'paid') NOT NULL DEFAULT 'open', made datetime(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
	token char(36) NOT NULL DEFAULT (uuid()), low varchar(200) AS (lower(token)) VIRTUAL,
	UNIQUE KEY customers_email (email(50) DESC), FULLTEXT KEY customers_token (token),
	CONSTRAINT customers_token_filled CHECK (length(token) > 0)) COMMENT 'who''s "buying"';
CREATE TABLE orders (id int NOT NULL PRIMARY KEY, customer bigint unsigned, KEY orders_customer (customer),
	CONSTRAINT orders_customer FOREIGN KEY (customer) REFERENCES customers (id) ON DELETE SET NULL);
CREATE VIEW emails AS SELECT email FROM customers;
`

func TestMySQLProgramPlansHCL(t *testing.T) {
	server := mysqlServer(t)
	p := newMySQLPerson(t, server, "hcl")
	p.write("schema/10.hcl", mysqlHCL)
	p.write("schema/20.sql", "CREATE VIEW emails AS SELECT email FROM customers;")
	truth := p.write("truth.sql", mysqlTruth)
	p.planned(p.path("schema"), truth)
	p.refusesHCL("schema \"public\" {}\ntable \"t\" {\n  schema = schema.public\n  column \"a\" {\n    type = varchar(70000)\n    null = false\n  }\n}\n")
}
