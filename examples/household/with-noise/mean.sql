-- What homes use in an hour, on average over a week, to 5 %.
CREATE STREAM WeeklyEnergy AS
SELECT AVG(energy)
WINDOW TUMBLING (SIZE 7 DAYS)
FROM HomeEnergy BETWEEN 180 AND 10000
WITH (error = 5 %, typical = 300, values = 168);
