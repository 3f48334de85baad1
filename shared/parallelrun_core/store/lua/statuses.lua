-- What is known of many jobs, for whoever shows them.
--
-- KEYS  job of each
-- Answer [all fields and values, as HGETALL gives them...]

local answer = {}
for i = 1, #KEYS do
  answer[i] = redis.call('HGETALL', KEYS[i])
end
return answer
