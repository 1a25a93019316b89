CREATE TABLE tenants (
  id char(36) NOT NULL DEFAULT (uuid()),
  name varchar(200) NOT NULL,
  slug varchar(63) NOT NULL,
  plan enum('free','team','enterprise') NOT NULL DEFAULT 'free',
  created_at datetime(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (id),
  UNIQUE KEY tenants_slug (slug)
) COMMENT='customer organisations';
CREATE TABLE users (
  id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY,
  tenant_id char(36) NOT NULL,
  email varchar(320) NOT NULL COMMENT 'login name',
  email_domain varchar(255) GENERATED ALWAYS AS (substring_index(lower(email), '@', -1)) STORED,
  deleted_at datetime,
  active_email varchar(320) GENERATED ALWAYS AS (if(deleted_at is null, lower(email), null)) VIRTUAL,
  CONSTRAINT users_email_shape CHECK (email LIKE '%_@_%'),
  UNIQUE KEY users_active_email (tenant_id, active_email),
  CONSTRAINT users_tenant FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE TABLE addresses (
  id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY,
  user_id bigint unsigned NOT NULL,
  country char(2) NOT NULL,
  line1 varchar(255) NOT NULL,
  is_default boolean NOT NULL DEFAULT false,
  KEY addresses_user ((lower(line1)), user_id DESC),
  CONSTRAINT addresses_user_fk FOREIGN KEY (user_id) REFERENCES users(id)
);
CREATE TABLE categories (
  id int NOT NULL PRIMARY KEY,
  parent_id int,
  title varchar(100) NOT NULL,
  CONSTRAINT categories_parent FOREIGN KEY (parent_id) REFERENCES categories(id)
);
CREATE TABLE products (
  id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY,
  category_id int,
  sku varchar(64) NOT NULL,
  title varchar(200) NOT NULL,
  body text,
  price decimal(12,2) NOT NULL,
  tags json NOT NULL DEFAULT (json_array()),
  CONSTRAINT products_price CHECK (price >= 0),
  UNIQUE KEY products_sku (sku),
  FULLTEXT KEY products_search (title, body),
  CONSTRAINT products_category FOREIGN KEY (category_id) REFERENCES categories(id) ON DELETE SET NULL
);
CREATE TABLE warehouses (
  id int NOT NULL PRIMARY KEY,
  code varchar(20) CHARACTER SET latin1 COLLATE latin1_bin NOT NULL,
  region varchar(20),
  spot point NOT NULL SRID 4326,
  UNIQUE KEY warehouses_code_region (code, region),
  SPATIAL KEY warehouses_spot (spot)
);
CREATE TABLE inventory (
  warehouse_id int NOT NULL,
  product_id bigint unsigned NOT NULL,
  qty int NOT NULL DEFAULT 0,
  PRIMARY KEY (warehouse_id, product_id),
  CONSTRAINT inventory_qty CHECK (qty >= 0),
  CONSTRAINT inventory_w FOREIGN KEY (warehouse_id) REFERENCES warehouses(id),
  CONSTRAINT inventory_p FOREIGN KEY (product_id) REFERENCES products(id)
);
CREATE TABLE orders (
  id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY,
  tenant_id char(36) NOT NULL,
  user_id bigint unsigned NOT NULL,
  status enum('new','paid','shipped','cancelled') NOT NULL DEFAULT 'new',
  placed_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at timestamp NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP,
  meta json NOT NULL,
  KEY orders_open (tenant_id, placed_at DESC),
  CONSTRAINT orders_t FOREIGN KEY (tenant_id) REFERENCES tenants(id),
  CONSTRAINT orders_u FOREIGN KEY (user_id) REFERENCES users(id)
);
CREATE TABLE order_items (
  order_id bigint unsigned NOT NULL,
  line smallint NOT NULL,
  product_id bigint unsigned NOT NULL,
  qty int NOT NULL,
  unit_price decimal(12,2) NOT NULL,
  total decimal(14,2) GENERATED ALWAYS AS (qty * unit_price) STORED,
  PRIMARY KEY (order_id, line),
  CONSTRAINT order_items_pos CHECK (qty > 0 AND unit_price >= 0),
  CONSTRAINT order_items_o FOREIGN KEY (order_id) REFERENCES orders(id) ON DELETE CASCADE,
  CONSTRAINT order_items_p FOREIGN KEY (product_id) REFERENCES products(id)
);
CREATE TABLE shipments (
  id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY,
  order_id bigint unsigned NOT NULL,
  line smallint NOT NULL,
  carrier varchar(50) NOT NULL,
  CONSTRAINT shipments_item FOREIGN KEY (order_id, line) REFERENCES order_items(order_id, line)
);
CREATE TABLE audit_log (
  id bigint NOT NULL,
  at datetime NOT NULL,
  actor varchar(100),
  what json NOT NULL,
  PRIMARY KEY (id, at),
  KEY audit_actor (actor)
) PARTITION BY RANGE (YEAR(at)) (
  PARTITION p2026 VALUES LESS THAN (2027),
  PARTITION p2027 VALUES LESS THAN (2028)
);
CREATE TABLE settings (
  tenant_id char(36) NOT NULL,
  `key` varchar(100) NOT NULL,
  value json,
  UNIQUE KEY settings_k (tenant_id, `key`),
  CONSTRAINT settings_t FOREIGN KEY (tenant_id) REFERENCES tenants(id)
);
CREATE VIEW open_orders AS SELECT o.id, o.status, u.email FROM orders o JOIN users u ON u.id = o.user_id WHERE o.status IN ('new','paid');
CREATE FUNCTION slugify(s varchar(200)) RETURNS varchar(200) DETERMINISTIC
BEGIN
  RETURN lower(replace(s, ' ', '-'));
END;
CREATE TRIGGER tenants_slug_bi BEFORE INSERT ON tenants FOR EACH ROW
BEGIN
  SET NEW.slug = slugify(NEW.slug);
END;
