-- The same to half a percent, which is more than these homes allow.
CREATE STREAM WeeklyEnergy AS
SELECT AVG(energy)
WINDOW TUMBLING (SIZE 7 DAYS)
FROM HomeEnergy BETWEEN 180 AND 10000
WITH (error = 0.5 %, typical = 300, values = 168);
