-- Forget what was learnt; with the configuration too, the learner is gone.
--
-- KEYS  1 config  2 meta, then all other keys of its state
-- ARGV  1 born of the next life, or "" to remove the learner
-- Returns 1, or 0 if there was no such learner
-- Race met here: workers in the middle of a commit. Theirs is to another birth and does nothing.

if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
for i = 2, #KEYS do
  redis.call('UNLINK', KEYS[i])
end
if ARGV[1] == '' then
  redis.call('UNLINK', KEYS[1])
else
  redis.call('HSET', KEYS[2], 'born', ARGV[1])
end
return 1
