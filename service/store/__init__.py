"""What Lacuna keeps, and where: bytes and keys in Redis or Valkey, nothing about policies."""
