SELECT id FROM keep
