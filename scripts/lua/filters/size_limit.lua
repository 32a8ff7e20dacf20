-- Refuses jobs whose input is too large, without decoding it.
--
-- The endpoint's environment has the limit: SIZE_LIMIT = 65536 bytes, or with a unit, 64KB or 2MB. Without the variable
-- only the server's own limit holds.
local units = { B = 1, KB = 1024, MB = 1024 * 1024 }

return function(job)
  local text = job.env.SIZE_LIMIT
  if not text then
    return
  end
  local number, unit = text:match("^(%d+)%s*(%a*)$")
  local factor = units[unit == "" and "B" or unit]
  if not number or not factor or #number > 12 then
    error("SIZE_LIMIT = " .. text .. " is not a size such as 65536, 64KB or 2MB")
  end
  local limit = math.tointeger(number) * factor
  if job.size > limit then
    return false, "input has " .. job.size .. " bytes, but this endpoint accepts " .. limit .. ": send less"
  end
end
