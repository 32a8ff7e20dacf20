-- Counts the words of a text and ranks them by frequency.
--
--   input   {"text": "to be or not to be", "top": 3, "least": 1}
--   output  {"words": 6, "distinct": 4, "top": [{"word": "be", "count": 2}, {"word": "to", "count": 2}, ...]}
--
-- A word is a run of letters, digits and apostrophes; capitals and small letters (ASCII) count as equal. Words of equal
-- frequency are ranked by the alphabet. `least`: smallest frequency of a word in `top`. The environment's LEAST and TOP
-- are the defaults.
local function whole(value, name, least)
  if math.type(value) ~= "integer" or value < least then
    error("input." .. name .. " must be a whole number from " .. least, 0)
  end
  return value
end

return function(input, job)
  if type(input.text) ~= "string" then
    error("input.text must be a string", 0)
  end
  local top = whole(input.top or math.tointeger(tonumber(job.env.TOP)) or 10, "top", 0)
  local least = whole(input.least or math.tointeger(tonumber(job.env.LEAST)) or 1, "least", 1)

  local counts, words, distinct = {}, 0, 0
  -- Bytes from 128 are parts of letters beyond ASCII.
  for word in input.text:gmatch("[%w'\x80-\xff]+") do
    word = word:lower()
    words = words + 1
    if not counts[word] then
      counts[word] = 0
      distinct = distinct + 1
    end
    counts[word] = counts[word] + 1
  end

  local ranking = {}
  for word, count in pairs(counts) do
    if count >= least then
      ranking[#ranking + 1] = { word = word, count = count }
    end
  end
  table.sort(ranking, function(a, b)
    if a.count ~= b.count then
      return a.count > b.count
    end
    return a.word < b.word
  end)
  -- json.array makes a text without words give [] and not {}.
  return { words = words, distinct = distinct, top = json.array(table.move(ranking, 1, math.min(top, #ranking), 1, {})) }
end
