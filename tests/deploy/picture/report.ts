// What the test reads: how much of each panel is drawn, and which errors there were.
import { Picture } from './picture';

export const errors: string[] = [];

window.addEventListener('error', ({ message }) => errors.push(message));
window.addEventListener('unhandledrejection', ({ reason }) => errors.push(String(reason)));
const consoleError = console.error;
console.error = (...said: unknown[]) => {
  errors.push(said.map(String).join(' '));
  consoleError(...said);
};

// Axes and grids are grey. Data has a colour.
function colouredPixels(canvas: HTMLCanvasElement) {
  const { data } = canvas.getContext('2d')!.getImageData(0, 0, canvas.width, canvas.height);
  let coloured = 0;
  for (let i = 0; i < data.length; i += 4) {
    const [red, green, blue, alpha] = data.subarray(i, i + 4);
    coloured += alpha > 100 && Math.max(red, green, blue) - Math.min(red, green, blue) > 60 ? 1 : 0;
  }
  return coloured;
}

function reportOf(id: number) {
  const panel = document.getElementById(`panel-${id}`);
  const canvases = [...(panel?.querySelectorAll('canvas') ?? [])].filter(({ width, height }) => width * height > 0);
  const content = panel?.querySelector('[data-testid="data-testid panel content"]');
  return { id, text: content?.textContent ?? null, coloured: canvases.reduce((sum, canvas) => sum + colouredPixels(canvas), 0) };
}

// Once all is drawn: charts are drawn a moment after their panel, when it has been measured.
export async function leaveReport({ dashboard }: Picture) {
  await new Promise((done) => setTimeout(done, 3000));
  const panels = dashboard.panels.filter(({ type }) => type !== 'row').map(({ id }) => reportOf(id));
  const report = document.createElement('script');
  report.type = 'application/json';
  report.id = 'report';
  report.textContent = JSON.stringify({ panels, errors });
  document.body.append(report);
}
