-- So many jobs in so much time for each tenant, so that none uses up what all of them share. One too many is 429, and
-- Retry-After says when there is room.
--
-- The endpoint's environment: TENANT_QUOTA = 100/60 (jobs / seconds). TENANT_FIELD = tenant names the field of the input
-- that says whose job it is; without it, each API key is a tenant. A job without that field counts for its key. The counts
-- are this server's: several nodes count each for itself, and a restart begins anew.
return function(job)
  local rule = job.env.TENANT_QUOTA
  if not rule then
    return
  end
  local most, seconds = rule:match("^(%d+)/(%d+)$")
  if not most then
    error("TENANT_QUOTA = " .. rule .. " is no quota, such as 100/60 for 100 jobs in 60 seconds")
  end

  local tenant = "key " .. job.key
  local field = job.env.TENANT_FIELD
  if field and type(job.input[field]) == "string" then
    tenant = "tenant " .. job.input[field]:sub(1, 200)
  end
  local free, wait = quota.take(tenant, math.tointeger(most), tonumber(seconds))
  if not free then
    local message = "the quota of " .. rule .. " s is used up: try again in " .. math.ceil(wait) .. " s"
    return false, message, { status = 429, retryAfter = wait }
  end
end
