-- Takes a job whose end is recorded off the list of active ones, and frees what only a running job needs. A leader whose
-- term is over is refused: the job may have been reopened since.
--
-- KEYS  1 job  2 active jobs  3 events  4… what only a running job needs
-- ARGV  1 term  2 job id  3 how long the rest is remembered, s
-- Answer: 1, or 0 when another term has begun.

if redis.call('HGET', KEYS[1], 'term') ~= ARGV[1] then return 0 end
redis.call('ZREM', KEYS[2], ARGV[2])
redis.call('DEL', unpack(KEYS, 4))
redis.call('EXPIRE', KEYS[1], ARGV[3])
redis.call('EXPIRE', KEYS[3], ARGV[3])
return 1
