-- Pending events whose time has come, by the server's clock.
--
-- KEYS  1 due
-- ARGV  1 how many at the most

local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
return redis.call('ZRANGEBYSCORE', KEYS[1], 0, now_ms, 'LIMIT', 0, ARGV[1])
