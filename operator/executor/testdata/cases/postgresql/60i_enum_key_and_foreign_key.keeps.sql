SELECT id, w.st::text, words FROM w JOIN kind ON kind.st::text = w.st::text ORDER BY id
