SELECT id, "A a", g FROM "T t"
