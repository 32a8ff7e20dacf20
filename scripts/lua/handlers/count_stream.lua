-- Counts up to a number and streams every step: `/stream` shows the steps as they come, `/status` the progress.
--
--   input   {"to": 5, "every": 1}      every: emits each n-th number
--   chunks  {"n": 1}, {"n": 2}, ...    with {"left": ...} as metrics
--   output  {"counted": 5}
return function(input, job)
  local to, every = input.to or 10, input.every or 1
  if math.type(to) ~= "integer" or to < 0 then
    error("input.to must be a whole number from 0", 0)
  end
  if math.type(every) ~= "integer" or every < 1 then
    error("input.every must be a whole number from 1", 0)
  end

  job:log("counting to", to)
  local n = 0
  while n < to do
    -- A cancelled job learns of the stop here. A script without this check is ended shortly afterwards.
    if job:stopped() then
      job:log("stopped at", n)
      break
    end
    n = n + 1
    if n % every == 0 then
      job:emit({ n = n }, { left = to - n })
      job:progress({ at = n, to = to })
    end
  end
  return { counted = n }
end
