-- wrk -s service_wrk.lua URL -- KIND LEARNER PREFIX BODIES SIZE LIMIT
-- KIND json: BODIES has one body's end per line; compact: bodies of SIZE bytes, end to end;
-- reward: no file. Every request has an event id of its own, PREFIX and nine digits.

local kind, learner, prefix, limit
local bodies, count, number = {}, 0, 0

function init(args)
  kind, learner, prefix, limit = args[1], args[2], args[3], tonumber(args[6])
  if kind ~= "reward" then
    local file = assert(io.open(args[4], "rb"))
    while true do
      local body = file:read(kind == "json" and "*l" or tonumber(args[5]))
      if not body or #body == 0 then break end
      count = count + 1
      bodies[count] = body
    end
    file:close()
  end
  wrk.headers["Content-Type"] =
    kind == "compact" and "application/vnd.lacuna.f32" or "application/json"
end

function request()
  number = number + 1
  local id = prefix .. string.format("%09d", number)
  if kind == "json" then
    local start = '{"learner":"' .. learner .. '","event_id":"' .. id .. '"'
    return wrk.format("POST", "/select", nil, start .. bodies[number % count + 1])
  elseif kind == "compact" then
    local path = "/select?learner=" .. learner .. "&event_id=" .. id
    return wrk.format("POST", path, nil, bodies[number % count + 1])
  end
  if number > limit then wrk.thread:stop() end
  local paid = number % 10 == 0 and "1.0" or "0.0"
  return wrk.format("POST", "/reward", nil,
    '{"learner":"' .. learner .. '","event_id":"' .. id .. '","reward":' .. paid .. "}")
end

function done(summary)
  local failed = summary.errors.connect + summary.errors.read + summary.errors.write
    + summary.errors.status + summary.errors.timeout
  io.write(string.format(
    '\nFOUND {"requests":%d,"duration_us":%d,"failed":%d}\n',
    summary.requests, summary.duration, failed))
end
