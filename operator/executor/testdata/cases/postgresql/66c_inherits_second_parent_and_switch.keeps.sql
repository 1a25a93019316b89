SELECT c.a, c.b, d.a AS da, x FROM c, d
