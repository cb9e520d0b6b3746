-- All readings.
SELECT COUNT(energy_kwh), SUM(energy_kwh), AVG(energy_kwh), VAR(energy_kwh)
FROM SmartMeter;

-- Each household's days.
SELECT COUNT(energy_kwh), SUM(energy_kwh), AVG(energy_kwh), VAR(energy_kwh)
FROM SmartMeter
GROUP BY DAY(timestamp), VID;
