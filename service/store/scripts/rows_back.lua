-- One page of the log, backwards, with its rows joined: hundreds of thousands are read at a start.
--
-- KEYS  1 rewards
-- ARGV  1 from (log id, with "(" in front if without it)  2 how many entries
-- Returns {entries, id of the oldest, rows joined oldest first, newest mark or false,
--          how many rows are newer than it}

local page = redis.call('XREVRANGE', KEYS[1], ARGV[1], '-', 'COUNT', ARGV[2])
local values, mark, since = {}, false, 0
for i = #page, 1, -1 do
  local kind, value = page[i][2][1], page[i][2][2]
  if kind == 'r' then
    values[#values + 1] = value
    since = since + 1
  else
    mark, since = value, 0
  end
end
return {#page, #page > 0 and page[#page][1] or '', table.concat(values), mark, since}
