-- The server's clock, ms: the only one that all workers share.
--
-- KEYS  1 any key of the learner, so that a cluster asks the node that holds it

local time = redis.call('TIME')
return time[1] * 1000 + math.floor(time[2] / 1000)
