// Heat maps of Prometheus' histograms. @grafana/ui has no component for them, as Grafana's own is part of its application.
// This one draws on @grafana/ui's chart, with the same scheme of colours and with the buckets as rows of equal height.
import { getValueFormat, formattedValueToString, GrafanaTheme2 } from '@grafana/data';
import { AxisPlacement, ScaleDirection, ScaleOrientation } from '@grafana/schema';
import { measureText, UPlotChart, UPlotConfigBuilder, useTheme2 } from '@grafana/ui';
import * as chromatic from 'd3-scale-chromatic';
import { PanelProps, timeRange } from './panels';
import { Series } from './picture';
import { addMarks } from './marks';

const LEGEND_HEIGHT = 26;
const ROW_LABEL_HEIGHT = 16;

interface Cell {
  time: number;
  row: number;
  count: number;
}

function bound(series: Series) {
  return series.metric.le === '+Inf' ? Infinity : Number(series.metric.le);
}

// A bucket of Prometheus counts those below it too.
function cellsOf(buckets: Series[]): Cell[] {
  const below = new Map<number, number>();
  return buckets.flatMap(({ values }, row) => values.map(([time, text]) => {
    const count = Number(text) - (below.get(time) ?? 0);
    below.set(time, Number(text));
    return { time, row, count };
  }));
}

// On Grafana's dark theme, small counts are dark and large ones light.
function paletteOf({ scheme, steps, reverse }: any, theme: GrafanaTheme2) {
  const interpolate = (chromatic as any)[`interpolate${scheme}`] as (at: number) => string;
  const inverted = theme.isDark !== Boolean(reverse);
  return Array.from({ length: steps }, (_, i) => interpolate(inverted ? 1 - i / (steps - 1) : i / (steps - 1)));
}

export function Heatmap({ panel, picture, width, height }: PanelProps) {
  const theme = useTheme2();
  const { color, cellGap, filterValues, legend, yAxis } = panel.options;
  const buckets = panel.targets.flatMap((target) => picture.answers[panel.id][target.refId])
    .sort((a, b) => bound(a) - bound(b));
  const cells = cellsOf(buckets).filter(({ count }) => count > filterValues.le);
  if (cells.length === 0) {
    return <div className="no-data">No data</div>;
  }
  const most = Math.max(...cells.map(({ count }) => count));
  const palette = paletteOf(color, theme);
  const paint = (count: number) => palette[Math.min(palette.length - 1, Math.floor((count / most) * palette.length))];
  const format = (value: number) => formattedValueToString(getValueFormat(yAxis.unit)(value));
  const labels = buckets.map((bucket) => (bound(bucket) === Infinity ? '+Inf' : format(bound(bucket))));
  const plotHeight = height - (legend.show ? LEGEND_HEIGHT : 0);
  const every = Math.ceil((buckets.length * ROW_LABEL_HEIGHT) / plotHeight);

  const builder = new UPlotConfigBuilder('utc');
  const range = timeRange(picture);
  builder.addScale({
    scaleKey: 'x', isTime: true, orientation: ScaleOrientation.Horizontal, direction: ScaleDirection.Right,
    range: () => [range.from.valueOf(), range.to.valueOf()],
  });
  builder.addScale({
    scaleKey: 'y', orientation: ScaleOrientation.Vertical, direction: ScaleDirection.Up, range: () => [0, buckets.length],
  });
  builder.addAxis({ scaleKey: 'x', isTime: true, placement: AxisPlacement.Bottom, timeZone: 'utc', theme });
  const rows = buckets.map((_, row) => row).filter((row) => (row + 1) % every === 0);
  builder.addAxis({
    scaleKey: 'y', placement: AxisPlacement.Left, theme, grid: { show: false },
    splits: rows.map((row) => row + 1), values: rows.map((row) => labels[row]),
    size: Math.max(...rows.map((row) => measureText(labels[row], 12).width)) + 14,
  });
  builder.addSeries({ scaleKey: 'y', theme, pathBuilder: () => null, pointsBuilder: () => undefined } as any);
  builder.addHook('draw', (plot) => {
    const rowHeight = plot.bbox.height / buckets.length;
    const cellWidth = Math.abs(plot.valToPos(picture.step * 1000, 'x', true) - plot.valToPos(0, 'x', true));
    const gap = cellGap * window.devicePixelRatio;
    plot.ctx.save();
    plot.ctx.beginPath();
    plot.ctx.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
    plot.ctx.clip();
    for (const { time, row, count } of cells) {
      plot.ctx.fillStyle = paint(count);
      plot.ctx.fillRect(plot.valToPos(time * 1000, 'x', true) - cellWidth, plot.valToPos(row + 1, 'y', true),
        cellWidth - gap, rowHeight - gap);
    }
    plot.ctx.restore();
  });
  addMarks(builder, picture, theme);
  const times = [...new Set(cells.map(({ time }) => time * 1000))].sort((a, b) => a - b);
  return (
    <>
      <UPlotChart config={builder} data={[times, times.map(() => null)]} width={width} height={plotHeight} />
      {legend.show && (
        <div className="heat-legend" style={{ height: LEGEND_HEIGHT }}>
          <span>0</span>
          <i style={{ background: `linear-gradient(90deg, ${palette.join()})` }} />
          <span>{Math.round(most)}</span>
        </div>
      )}
    </>
  );
}
