CREATE SCHEMA "My App"; CREATE TYPE "My App"."Order ""State" AS ENUM ('Done', 'new');

CREATE TABLE "My App"."Or""der" (id int PRIMARY KEY, "St ate" "My App"."Order ""State" NOT NULL DEFAULT 'new',
  CONSTRAINT "not Done" CHECK ("St ate" <> 'Done'::"My App"."Order ""State" OR id > 0));
CREATE INDEX "by State" ON "My App"."Or""der" ("St ate");
CREATE INDEX "open ones" ON "My App"."Or""der" (id) WHERE "St ate" = 'new';
CREATE UNIQUE INDEX "by text" ON "My App"."Or""der" ((CASE "St ate" WHEN 'new' THEN id ELSE -id END));
