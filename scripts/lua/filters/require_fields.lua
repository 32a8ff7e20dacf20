-- Refuses jobs whose input lacks a field.
--
-- The endpoint's environment names the fields: REQUIRE_FIELDS = prompt, options.steps. A dot leads into an object.
-- A null field counts as missing. Without the variable no field is required.
local function find(value, path)
  for name in path:gmatch("[^.]+") do
    if type(value) ~= "table" then
      return nil
    end
    value = value[name]
  end
  return value
end

return function(job)
  for path in (job.env.REQUIRE_FIELDS or ""):gmatch("[^,%s]+") do
    local value = find(job.input, path)
    if value == nil or value == json.null then
      return false, "input." .. path .. " is missing: this endpoint requires it"
    end
  end
end
