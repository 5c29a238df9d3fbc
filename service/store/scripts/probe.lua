-- Whether the server takes writes: a replica, a full or a loading one says so here.
--
-- KEYS  1 meta

if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('HINCRBY', KEYS[1], 'appended', 0)
end
return 1
