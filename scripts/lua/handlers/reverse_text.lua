-- Reverses a text character by character (UTF-8), not byte by byte.
--
--   input   {"text": "olleh"}
--   output  {"text": "hello", "characters": 5}
return function(input, job)
  local text = input.text
  if type(text) ~= "string" then
    error("input.text must be a string, such as {\"text\": \"olleh\"}", 0)
  end

  local characters = {}
  for _, code in utf8.codes(text) do
    characters[#characters + 1] = utf8.char(code)
  end
  local count = #characters
  for i = 1, count // 2 do
    characters[i], characters[count + 1 - i] = characters[count + 1 - i], characters[i]
  end
  return { text = table.concat(characters), characters = count }
end
