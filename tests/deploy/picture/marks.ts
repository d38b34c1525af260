// Annotations, as marks on a chart: a dashed line at the beginning of each, with a triangle below, and its span shaded.
// The component that draws them in Grafana is not in @grafana/ui.
import { colorManipulator, GrafanaTheme2 } from '@grafana/data';
import { UPlotConfigBuilder } from '@grafana/ui';
import { Picture } from './picture';

// Consecutive points of an annotation's query are one event.
function events(picture: Picture) {
  return picture.annotations.flatMap(({ color, result }) => result.flatMap(({ values }) => {
    const spans: Array<{ from: number; to: number; color: string }> = [];
    for (const [time, value] of values) {
      const last = spans[spans.length - 1];
      if (Number(value) <= 0) {
        continue;
      }
      if (last && time - last.to <= 2 * picture.step) {
        last.to = time;
      } else {
        spans.push({ from: time, to: time, color });
      }
    }
    return spans;
  }));
}

// A chart asks for its children more than once.
const marked = new WeakSet<UPlotConfigBuilder>();

export function addMarks(builder: UPlotConfigBuilder, picture: Picture, theme: GrafanaTheme2) {
  if (marked.has(builder)) {
    return;
  }
  marked.add(builder);
  builder.addHook('draw', (plot) => {
    const { ctx, bbox } = plot;
    const bottom = bbox.top + bbox.height;
    const pixel = window.devicePixelRatio;
    ctx.save();
    for (const { from, to, color } of events(picture)) {
      const [left, right] = [from, to].map((time) => plot.valToPos(time * 1000, 'x', true));
      const paint = theme.visualization.getColorByName(color);
      ctx.fillStyle = colorManipulator.alpha(paint, 0.1);
      ctx.fillRect(left, bbox.top, right - left, bbox.height);
      ctx.strokeStyle = paint;
      ctx.lineWidth = pixel;
      ctx.fillStyle = paint;
      ctx.setLineDash([5 * pixel, 5 * pixel]);
      ctx.beginPath();
      ctx.moveTo(left, bbox.top);
      ctx.lineTo(left, bottom);
      ctx.stroke();
      ctx.beginPath();
      ctx.moveTo(left, bottom);
      ctx.lineTo(left - 5 * pixel, bottom + 6 * pixel);
      ctx.lineTo(left + 5 * pixel, bottom + 6 * pixel);
      ctx.fill();
    }
    ctx.restore();
  });
}
