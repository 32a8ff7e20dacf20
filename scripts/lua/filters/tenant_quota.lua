-- Limits the number of jobs of each tenant in a time window, so that no tenant uses up the capacity shared by all.
-- A job above the limit is refused with 429, and Retry-After says when the next job is accepted.
--
-- The endpoint's environment: TENANT_QUOTA = 100/60 (jobs / seconds). TENANT_FIELD = tenant names the input's field
-- with the tenant's name. Without the variable each API key is a tenant. A job without the field counts for its key.
-- Each server counts for itself: several nodes each grant the whole quota, and a restart begins anew.
return function(job)
  local rule = job.env.TENANT_QUOTA
  if not rule then
    return
  end
  local most, seconds = rule:match("^(%d+)/(%d+)$")
  if not most then
    error("TENANT_QUOTA = " .. rule .. " is not a quota such as 100/60 for 100 jobs in 60 seconds")
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
